"""What people and programs get to see, as plain documents: the same in the command line's --json and in the API."""
