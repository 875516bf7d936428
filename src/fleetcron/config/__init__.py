"""Settings: one frozen dataclass per room, read once at start and handed down. Nothing below asks the environment."""

from fleetcron.config.loading import load, read
from fleetcron.config.settings import (
    ApiConfig,
    Config,
    CoordinationConfig,
    ExecutorConfig,
    NodeConfig,
    SchedulerConfig,
    SecretsConfig,
    Shown,
    StoreConfig,
    WorkerConfig,
)

__all__ = [
    "ApiConfig",
    "Config",
    "CoordinationConfig",
    "ExecutorConfig",
    "NodeConfig",
    "SchedulerConfig",
    "SecretsConfig",
    "Shown",
    "StoreConfig",
    "WorkerConfig",
    "load",
    "read",
]
