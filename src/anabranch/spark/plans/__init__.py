"""The control loop: reports in the ledger become the plan of the next batch."""
