"""What must be true: vocabulary, history, plan, clauses, model, profiles and verdicts.

`specs` judges everyone and knows no one: it imports the standard library alone, and pyarrow only in
`specs.history`, where histories are stored."""
