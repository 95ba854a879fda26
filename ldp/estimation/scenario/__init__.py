"""Scenarios of presence: how many people came on chosen days, from the gap tallies alone.

A gap tally is a set of flows: from the start to the first day of each person, from each day to the next one,
and from the last one to the end. Everything that is published about presence are these flows. So a question
about more than two days has a least and a most number of people, and an estimate by the Markov chain of the
flows, which is the distribution of maximum entropy.
"""
