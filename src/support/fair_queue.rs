//! A queue that serves several parties in turn, whatever each of them has put into it.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Items of several parties. Those of one party stay in their order.
#[derive(Debug)]
pub(crate) struct FairQueue<K, T> {
    lanes: HashMap<K, VecDeque<T>>,
    /// The parties that have items, the next one first.
    order: VecDeque<K>,
}

impl<K: Clone + Eq + Hash, T> FairQueue<K, T> {
    /// Puts an item into the queue; returns whether it was empty.
    pub(crate) fn push(&mut self, party: &K, item: T) -> bool {
        let was_empty = self.is_empty();
        match self.lanes.get_mut(party) {
            Some(lane) => lane.push_back(item),
            None => {
                self.lanes.insert(party.clone(), VecDeque::from([item]));
                self.order.push_back(party.clone());
            }
        }
        was_empty
    }

    /// Takes up to `count` items, one of each party after the other.
    pub(crate) fn take(&mut self, count: usize) -> Vec<T> {
        let mut taken = Vec::new();
        while taken.len() < count
            && let Some(party) = self.order.pop_front()
        {
            let Some(lane) = self.lanes.get_mut(&party) else { continue };
            taken.extend(lane.pop_front());
            match lane.is_empty() {
                true => drop(self.lanes.remove(&party)),
                false => self.order.push_back(party),
            }
        }
        taken
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// How many items there are.
    #[cfg(feature = "serve")]
    pub(crate) fn len(&self) -> usize {
        self.lanes.values().map(VecDeque::len).sum()
    }
}

impl<K, T> Default for FairQueue<K, T> {
    fn default() -> Self {
        Self { lanes: HashMap::new(), order: VecDeque::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parties_are_served_in_turn_and_each_in_its_order() {
        let mut queue = FairQueue::default();
        assert!(queue.push(&"a", 1));
        for (party, item) in [("a", 2), ("a", 3), ("b", 4), ("c", 5), ("c", 6)] {
            assert!(!queue.push(&party, item));
        }
        assert_eq!(queue.take(4), [1, 4, 5, 2]);
        assert!(!queue.push(&"b", 7));
        assert_eq!(queue.take(9), [6, 3, 7]);
        assert!(queue.is_empty() && queue.lanes.is_empty() && queue.take(1).is_empty());
    }
}
