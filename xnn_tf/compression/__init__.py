"""`xnn_tf.compress`: a trained model to a small `.xnn` file by one call, a recipe of stages, and a report."""
