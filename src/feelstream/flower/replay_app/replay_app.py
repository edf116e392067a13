"""The app whose clients replay the simulator. Flower looks for assignments here, and would not find imported names."""

from feelstream.flower import replay

server_app = replay.server_app
client_app = replay.client_app
