"""Which evidence does ``explain`` show? Its sections, each made by a function of the explanation."""
