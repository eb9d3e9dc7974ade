"""The judge is judged: every known bug is searched for, and the kill matrix says what was found and how."""
