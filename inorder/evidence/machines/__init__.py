"""Machines for the cores of the reference alone: each compares one core with a small model of it, step by step."""
