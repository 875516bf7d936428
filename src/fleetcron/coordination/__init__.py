"""WHO: which scheduler plans which shard.

Leases are an optimisation. The term in every write and the unique key of a tick keep the promises, also while two nodes
believe that they own the same shard.
"""
