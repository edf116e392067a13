"""The scheduler in a real federation (extra `flower`): a Flower strategy for the server, a helper for the clients.

    from feelstream.flower import ScheduledFedAvg      # in the ServerApp, in place of FedAvg
    from feelstream.flower import Scheduled            # the same around any other strategy
    from feelstream.flower import Device               # in the ClientApp: reports what the device knows
    from feelstream.flower import LocalGrid            # in tests of both: a federation within one process
    from feelstream.flower import WorldGrid            # the same in the world of a scenario, for any strategy

docs/deployment.md tells the whole story.
"""

from feelstream.errors import needed

needed("flwr", "flower", "Flower")

from feelstream.flower.device import Device, fitted  # noqa: E402
from feelstream.flower.local_grid import LocalGrid  # noqa: E402
from feelstream.flower.scheduler import Scheduler  # noqa: E402
from feelstream.flower.settings import Devices, Measuring, Trust, Waiting  # noqa: E402
from feelstream.flower.strategy import Scheduled, ScheduledFedAvg  # noqa: E402
from feelstream.flower.wire import DeviceReport, ReportError  # noqa: E402
from feelstream.flower.world_grid import WorldGrid, world_subset  # noqa: E402

__all__ = [
    "Device", "DeviceReport", "Devices", "LocalGrid", "Measuring", "ReportError", "Scheduled", "ScheduledFedAvg",
    "Scheduler", "Trust", "Waiting", "WorldGrid", "fitted", "world_subset",
]  # fmt: skip
