"""The suite for pytest users: `pytest --pyargs conformance.suite --inorder-target T --alluredir DIR`.

One run of the target, the same as `inorder conform`, then one test per clause and per check of the run.
"""
