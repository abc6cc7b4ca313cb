"""The command line: one module per command, each thin (parse, call, render, code), imported when it is used."""
