"""A right driver, wrong in one line of its own: what each command then says of it, and how soon."""
