"""The names of what feelstream itself brings, as a re-check knows it; any other name is somebody's own."""

CONTROLLED_OCEAN = "ocean with power control"
OUR_POLICIES = (
    "lyapunov", "lyapunov_joint", "random", "round_robin", "proportional_fair", "best_channel", "greedy_energy", "age",
    "fedcs", "power_of_choice", "oort", "ocean", CONTROLLED_OCEAN, "myopic_energy", "importance_greedy", "select_all",
    "fedcgd", "fedteddi", "fedbacys", "representative", "balanced", "balanced_joint", "update_norm", "gradient_norm",
)  # fmt: skip
ONE_DEADLINE = ("lyapunov_joint", "balanced_joint", CONTROLLED_OCEAN)
OUR_METRICS = ("combined", "amount", "dissimilarity")
OUR_LOCAL_TRAININGS = ("sgd",)
OUR_SERVER_UPDATES = (
    "fedavg", "equal", "inverse_probability", "remembered", "fedavgm", "fedadam", "fedyogi", "fedadagrad",
    "trimmed_mean", "median", "gaussian", "quantise", "top_k", "smoothed", "limited",
)  # fmt: skip
KNOWS_PROBABILITY = ("random", "select_all", "gradient_norm")
ASKS_EVERYONE = ("gradient_norm",)  # for a report
TRAINS_FIRST = ("update_norm",)  # for which devices train
