"""What programs, graphs and tools of this family of frameworks rely on, a test each.

``test_links.py`` lists every expectation with the tests that hold it and fails when one is missing. Where this design
differs from the family, tests hold what this design says:

- The axis of a split value is in its graph only, and a reshape that moves items between shards gathers the value
  instead of failing; only the question for its ``axis`` is an error.
- An all-reduce is copies and kernels of the schedule itself, not a call compiled before: kernels of several lanes are
  one program, and what nobody reads of the result is not sent.
- Shards need not divide: the last ones are shorter or empty, each device has room for a full one.
- Schedules are compared as graphs over parameters, so no rule has to number buffers behind the cache.
- HCQ2 chooses who writes the words that change in a command stream, Python or compiled code; the stream is the same.
  There is no second set of devices for it, and memory of a capture is freed with it under both.
- What a capture allocates is freed when it is dropped; there is no call that takes intermediates away from a live one.
- Packed integer comparisons, blends and wide registers of x86 stay: lanes are kept together, and only comparisons of
  floats keep away from the flags.
- Float rewrites that change a value for NaN, infinities or -0.0 are not made.
- Nodes are not numbered for traces, and names of tensor methods are kept beside the graph.
"""
