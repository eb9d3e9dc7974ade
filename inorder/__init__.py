"""The door: starts the command line and the pytest plugin, after a look at what `import specs` would find.

The five import packages have common names. This one has a name of its own, so that it is found even where another
package hides one of them; it imports none of them until `inorder.shadows` has found all five to be ours.

`inorder.evidence` is no part of the door: it is the topmost room, and has only its place here (docs/decisions/0010).
"""
