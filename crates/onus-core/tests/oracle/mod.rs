//! Every combination of facts against tables that share no code with the product.

mod claim;
mod claim_rules;
mod criteria;
mod decision;
mod outbound;
mod retry_rules;
