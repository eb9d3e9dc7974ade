"""Reports: one verdict as a table, a failure that explains itself, Allure, JUnit, Markdown and JSON.

Every report is made from the verdict's JSON form, so that a saved run reads as it did when it ended.
"""
