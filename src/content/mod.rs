//! What a body is: the classifier of response shapes.

pub mod shape;
