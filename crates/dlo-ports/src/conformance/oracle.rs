//! The model oracle: random operations on a store and on the model must give the same answers.
