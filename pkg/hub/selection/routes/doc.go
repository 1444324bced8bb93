// Package routes maps events to the pairs of namespace and cluster, and to the Placements, that
// they concern: through indexes of the manager's cache. It owns these indexes, which changes matter,
// and what the cache keeps of the kinds that only the rule reads. It decides nothing and writes nothing;
// it tells the rule what an event shows and the caches may show only for a moment.
package routes
