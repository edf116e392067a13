"""A Flower app as Flower's own quickstarts have it; nothing in it knows of feelstream."""

import numpy as np
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

# Create ServerApp
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Main entry point for the ServerApp."""

    # Read run config
    fraction_evaluate: float = context.run_config["fraction-evaluate"]
    num_rounds: int = context.run_config["num-server-rounds"]

    # Load global model
    arrays = ArrayRecord([np.zeros((16, 10), np.float32)])

    # Initialize FedAvg strategy
    strategy = FedAvg(fraction_evaluate=fraction_evaluate)

    # Start strategy, run FedAvg for `num_rounds`
    result = strategy.start(grid=grid, initial_arrays=arrays, num_rounds=num_rounds)

    # Keep the results where they can be found
    context.run_config["result"].append(result)
