"""The command line: `inorder`, its commands, and how every error becomes one sentence and an exit code."""
