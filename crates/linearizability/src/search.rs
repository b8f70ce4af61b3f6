//! The search for a linearization.
//!
//! Calls and answers are in one list, ordered by time. Only calls before the first answer are
//! candidates for the next operation: a call after an answer began when that operation had already
//! ended. A candidate is tried, removed from the list together with its answer, and the search
//! starts again at the front. When an answer comes first, the last choice is undone. Tried states are
//! cached as pairs of the executed operations and the resulting state, because the rest of the search
//! depends on nothing else.
//!
//! Three shortcuts lose no order. A read with a matching answer is never better executed later, so
//! that choice is not undone. An operation without an answer that changes nothing now need not be
//! executed now. Of equal operations without an answer the earliest call is executed first, because
//! it may take the place of any other.

use std::collections::HashSet;

use crate::history::Operation;
use crate::model::Model;

/// The result of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Positions of the operations in an order that explains every answer; operations without an
    /// answer are included as far as they may have been executed.
    Linearizable(Vec<usize>),
    /// There is no such order.
    Impossible {
        /// The longest prefix of an order that was found.
        longest: Vec<usize>,
        /// The operations under way at its end: none of them can be next.
        stuck: Vec<usize>,
    },
    /// The limit of tried states was exceeded.
    Undecided,
}

impl Verdict {
    pub fn is_linearizable(&self) -> bool {
        matches!(self, Self::Linearizable(_))
    }
}

/// Searches an order of `history`, whose operations may be listed in any order. `most_tried` bounds the
/// search's time and memory: it is the limit of cached pairs of operations and state.
pub fn check<M: Model>(
    model: &M,
    history: &[Operation<M::Input, M::Output>],
    most_tried: usize,
) -> Verdict {
    let mut entries = Entries::new(history);
    let mut unanswered = history.iter().filter(|op| op.completed.is_some()).count();
    let mut done = vec![0_u64; history.len().div_ceil(64)];
    let mut state = model.initial();
    let mut tried = HashSet::new();
    let mut chosen: Vec<Step<M::State>> = Vec::new();
    let twins = earlier_twins(history);
    let (mut longest, mut stuck) = (Vec::new(), Vec::new());
    let mut at = entries.first();
    while unanswered > 0 {
        if let Some(call) = at.filter(|entry| !entries.is_answer(*entry)) {
            let number = entries.operation(call);
            let operation = &history[number];
            let output = operation.completed.as_ref().map(|(_, output)| output);
            let may_be_next = twins[number].is_none_or(|twin| is_in(&done, twin));
            let next = may_be_next
                .then(|| model.step(&state, &operation.input, output))
                .flatten()
                .filter(|next| output.is_some() || *next != state);
            if let Some(next) = next {
                flip(&mut done, number);
                if tried.insert((done.clone(), next.clone())) {
                    if tried.len() > most_tried {
                        return Verdict::Undecided;
                    }
                    let is_final = next == state && model.only_looks(&operation.input);
                    chosen.push(Step {
                        call,
                        before: std::mem::replace(&mut state, next),
                        is_final,
                    });
                    entries.take_out(call);
                    unanswered -= usize::from(operation.completed.is_some());
                    at = entries.first();
                    continue;
                }
                flip(&mut done, number);
            }
            at = entries.after(call);
            continue;
        }
        if stuck.is_empty() || chosen.len() > longest.len() {
            longest = order_of(&chosen, &entries);
            stuck = entries.under_way();
        }
        loop {
            let Some(choice) = chosen.pop() else {
                return Verdict::Impossible { longest, stuck };
            };
            let number = entries.operation(choice.call);
            state = choice.before;
            flip(&mut done, number);
            entries.put_back(choice.call);
            unanswered += usize::from(history[number].completed.is_some());
            at = entries.after(choice.call);
            if !choice.is_final {
                break;
            }
        }
    }
    Verdict::Linearizable(order_of(&chosen, &entries))
}

/// An operation chosen as the next one.
struct Step<S> {
    call: usize,
    /// The state before it.
    before: S,
    /// No other choice is better.
    is_final: bool,
}

fn order_of<S>(chosen: &[Step<S>], entries: &Entries) -> Vec<usize> {
    let calls = chosen.iter().map(|choice| choice.call);
    calls.map(|call| entries.operation(call)).collect()
}

/// Returns, for each operation without an answer, the previous one with an equal call.
fn earlier_twins<I: PartialEq, O>(history: &[Operation<I, O>]) -> Vec<Option<usize>> {
    let unknown = history.iter().enumerate();
    let mut unknown: Vec<_> = unknown.filter(|(_, op)| op.completed.is_none()).collect();
    unknown.sort_by_key(|(number, operation)| (operation.invoked, *number));
    let mut twins = vec![None; history.len()];
    for (place, (number, operation)) in unknown.iter().enumerate() {
        let before = unknown[..place].iter().rev();
        let twin = before
            .filter(|(_, earlier)| earlier.input == operation.input)
            .map(|(number, _)| *number)
            .next();
        twins[*number] = twin;
    }
    twins
}

fn is_in(set: &[u64], number: usize) -> bool {
    set[number / 64] & (1 << (number % 64)) != 0
}

fn flip(set: &mut [u64], number: usize) {
    set[number / 64] ^= 1 << (number % 64);
}

/// Calls and answers by time, in a linked list whose entries can be removed, and restored in reverse
/// order. Entry 0 is the list's head.
struct Entries {
    entries: Vec<Entry>,
}

struct Entry {
    operation: usize,
    /// Of a call: its answer, if any.
    answer: Option<usize>,
    is_answer: bool,
    before: usize,
    after: usize,
}

impl Entries {
    fn new<I, O>(history: &[Operation<I, O>]) -> Self {
        // At one instant calls come first: adjacent operations may overlap.
        let mut moments = Vec::new();
        for (number, operation) in history.iter().enumerate() {
            moments.push((operation.invoked, false, number));
            if let Some((completed, _)) = &operation.completed {
                moments.push(((*completed).max(operation.invoked), true, number));
            }
        }
        moments.sort_unstable();
        let count = moments.len() + 1;
        let head = Entry {
            operation: 0,
            answer: None,
            is_answer: true,
            before: count - 1,
            after: 1 % count,
        };
        let mut entries = vec![head];
        let mut calls = vec![0; history.len()];
        for (position, (_, is_answer, operation)) in moments.into_iter().enumerate() {
            let index = position + 1;
            if is_answer {
                let call: usize = calls[operation];
                entries[call].answer = Some(index);
            } else {
                calls[operation] = index;
            }
            entries.push(Entry {
                operation,
                answer: None,
                is_answer,
                before: index - 1,
                after: (index + 1) % count,
            });
        }
        Self { entries }
    }

    fn operation(&self, entry: usize) -> usize {
        self.entries[entry].operation
    }

    fn is_answer(&self, entry: usize) -> bool {
        self.entries[entry].is_answer
    }

    fn first(&self) -> Option<usize> {
        self.after(0)
    }

    fn after(&self, entry: usize) -> Option<usize> {
        Some(self.entries[entry].after).filter(|next| *next != 0)
    }

    /// Returns the operations with calls before the first answer.
    fn under_way(&self) -> Vec<usize> {
        let mut found = Vec::new();
        let mut at = self.first();
        while let Some(entry) = at.filter(|entry| !self.is_answer(*entry)) {
            found.push(self.operation(entry));
            at = self.after(entry);
        }
        found
    }

    fn take_out(&mut self, call: usize) {
        self.unlink(call);
        if let Some(answer) = self.entries[call].answer {
            self.unlink(answer);
        }
    }

    fn put_back(&mut self, call: usize) {
        if let Some(answer) = self.entries[call].answer {
            self.link(answer);
        }
        self.link(call);
    }

    fn unlink(&mut self, entry: usize) {
        let Entry { before, after, .. } = self.entries[entry];
        self.entries[before].after = after;
        self.entries[after].before = before;
    }

    fn link(&mut self, entry: usize) {
        let Entry { before, after, .. } = self.entries[entry];
        self.entries[before].after = entry;
        self.entries[after].before = entry;
    }
}
