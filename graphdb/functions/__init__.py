"""The functions of the language: one table of what each is called, takes, yields and means."""
