"""Bad input: bytes that nobody should send, for everything of the reference that reads what others wrote.

    python -m inorder.evidence.fuzzing --inputs 1000000 --seed 1

`corpus` holds inputs with the answer that each must get, `mutate` makes others of good and bad ones, `readers` says
what reads them and what is asked of it: no error but `ProtocolError`, no hang, no memory beyond what came in.
"""
