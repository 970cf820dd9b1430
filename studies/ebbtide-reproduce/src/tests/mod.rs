//! Reproductions as a whole: the papers' cells, figures and statements.

mod rcoap21;
mod reproduce;
