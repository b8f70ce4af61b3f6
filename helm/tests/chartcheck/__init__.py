"""Checks of the Helm chart without a cluster; scripts/check-helm runs them."""
