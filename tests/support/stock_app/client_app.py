"""A Flower app as Flower's own quickstarts have it; nothing in it knows of feelstream."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from task import load_data, test_fn, train_fn

# Flower ClientApp
app = ClientApp()


@app.train()
def train(msg: Message, context: Context):
    """Train the model on local data."""

    # Load the model and initialize it with the received weights
    (weights,) = msg.content["arrays"].to_numpy_ndarrays()

    # Load the data
    partition_id = context.node_config["partition-id"]
    images, labels = load_data(partition_id)

    # Call the training function
    weights, train_loss = train_fn(weights, images, labels, context.run_config["local-epochs"])

    # Construct and return reply Message
    model_record = ArrayRecord([weights])
    metrics = {"train_loss": train_loss, "num-examples": len(labels)}
    metric_record = MetricRecord(metrics)
    content = RecordDict({"arrays": model_record, "metrics": metric_record})
    return Message(content=content, reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context):
    """Evaluate the model on local data."""

    # Load the model and initialize it with the received weights
    (weights,) = msg.content["arrays"].to_numpy_ndarrays()

    # Load the data
    partition_id = context.node_config["partition-id"]
    images, labels = load_data(partition_id)

    # Call the evaluation function
    eval_loss, eval_acc = test_fn(weights, images, labels)

    # Construct and return reply Message
    metrics = {"eval_loss": eval_loss, "eval_acc": eval_acc, "num-examples": len(labels)}
    metric_record = MetricRecord(metrics)
    content = RecordDict({"metrics": metric_record})
    return Message(content=content, reply_to=msg)
