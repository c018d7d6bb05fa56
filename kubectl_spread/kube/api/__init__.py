"""The API: types, labels, quantities, managed fields. It imports nothing else of ours."""
