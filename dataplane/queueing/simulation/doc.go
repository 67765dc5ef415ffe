// Package simulation simulates queues event by event: customers in the order of
// their arrival, c equal servers, any distributions (G/G/c, FIFO). It is the
// oracle of package queueing, which it does not know, and of capacity plans. The
// same seed gives the same run.
package simulation
