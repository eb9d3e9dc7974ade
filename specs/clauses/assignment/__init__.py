"""ASG: who works on which queue."""
