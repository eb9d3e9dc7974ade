"""A changed module, run as if its file said so: loaded in memory, with whatever rests on it loaded anew.

To be done in a process that ends afterwards. No file is touched.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

OURS = ("specs", "reference_impl", "conformance", "chaos", "spark_checkers", "inorder", "tests")
STAYS = (
    "specs.errors",
    "specs.faults",
    "specs.history",
    "specs.plan",
    "specs.vocabulary",
)
"""What histories are made of: prepared ones go on being of these classes. It imports no clause."""


class _Changed(SourceFileLoader):
    """Loads a module's file as the tree that it is given."""

    def __init__(self, name: str, path: str, tree: ast.Module) -> None:
        super().__init__(name, path)
        self._tree = tree

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = compile(self._tree, self.path, "exec", dont_inherit=True)
        return code


class _Finder(MetaPathFinder):
    """Finds one module, changed."""

    def __init__(self, module: str, tree: ast.Module) -> None:
        self.module, self.tree = module, tree

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None:
            spec.loader = _Changed(fullname, spec.origin, self.tree)
        return spec


def load_anew(module: str, tree: ast.Module) -> None:
    """From now on the module is what the tree says, for whatever of ours is imported from now on."""
    for name in [each for each in sys.modules if each.partition(".")[0] in OURS]:
        if name != "specs" and not name.startswith(STAYS):
            del sys.modules[name]
    sys.meta_path.insert(0, _Finder(module, tree))
