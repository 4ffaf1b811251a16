"""Topics of Kafka: reaching them, reading and writing them, and knowing them again."""
