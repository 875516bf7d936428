"""REST: everything that the engine can do, for programs. FastAPI is imported in this room only, and when it is used."""
