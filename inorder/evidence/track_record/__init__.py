"""The track record: real bugs of released brokers and clients, each refuted by a clause in the release that has it
and upheld in one that has not.

`python -m inorder.evidence.track_record` reproduces every entry and refreshes the table in `docs/track-record.md`.
"""
