// Package doctor decides what kubectl inventory doctor reports of a hub as a whole: whether the addon,
// its manager, its agents and what they rely on are in order. It is pure, like all of package decide,
// whose findings it returns.
package doctor
