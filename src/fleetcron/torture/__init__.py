"""A bounded fault test on the user's own database: real nodes, real faults, and a judge who believes none of them.

`siege.py` is the order of events. `postgres_ground.py` and `sqlite_ground.py` make a place of its own in the database
and take it away again; `members.py` starts the product as child processes, `network.py` stands between them and the
database, `torment.py` hurts them and `acts.py` changes their jobs meanwhile. The handlers (`handlers.py`) write what
they do into a file outside the database. `judge.py` compares that file, the log of the faults and the final rows with
the promises. It computes nothing with the code that it judges: `enumerator.py` counts ticks second by second, and the
rows are read with SQL of this room.
"""
