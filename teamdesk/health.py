"""Is it alive, is it ready, how is it doing: for load balancers and monitoring."""



LATEST_ROUND_SECONDS = 15  # five rounds; an older success means nobody dispatches
