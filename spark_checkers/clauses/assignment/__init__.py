"""ASG, over columns."""
