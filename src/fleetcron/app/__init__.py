"""Jobs in Python: `@app.job(cron="0 2 * * *")` on the functions that do the work.

A module with jobs is imported in many places: in the node, in every handler host, in the user's own tests. So this
package costs next to nothing until somebody asks for definitions, a sync or a node; only then the rest is imported.
"""

from fleetcron.app.application import Fleetcron

__all__ = ["Fleetcron"]
