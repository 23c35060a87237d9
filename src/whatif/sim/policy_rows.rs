//! Outcomes of what-if policies: plain data, counts and integers.
