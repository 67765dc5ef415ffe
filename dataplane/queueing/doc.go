// Package queueing is the model of the paper's section 3: what a pipeline of
// stages can carry and how long a request waits in it, by the closed forms of
// M/M/c (Eq. 1-7), by approximations for arrivals and services that are not
// Markovian (6.1), and its memory (Eq. 11, 12). A [Stage] measures the model's
// inputs on a live pipeline. It is arithmetic: rates are per second, time is an
// argument. Package simulation is its oracle.
package queueing
