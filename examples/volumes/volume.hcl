# A directory of a node that jobs may use: make it on the node, put the node's id below, then
#   kafila volume register examples/volumes/volume.hcl

name = "data"
type = "host"

# An id of 'kafila node status', or the start of one.
node_id = "8a3f2c1e"

host_path = "/srv/data"

# One allocation writes to it, and no other.
capability {
  access_mode     = "single-node-single-writer"
  attachment_mode = "file-system"
}
