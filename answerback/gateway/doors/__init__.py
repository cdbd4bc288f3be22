"""The ways into the gateway for agents and operators: the command line and HTTP."""
