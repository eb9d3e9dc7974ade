"""GEN: whose word counts, where a group numbers its generations."""
