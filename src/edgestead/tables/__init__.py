"""SQL and migrations of the control data, one module per resource."""
