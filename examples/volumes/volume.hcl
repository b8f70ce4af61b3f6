# A directory of a node for jobs: create it on the node, put the node's id below, then
#   kafila volume register examples/volumes/volume.hcl

name = "data"
type = "host"

# An id from 'kafila node status', or an id prefix.
node_id = "8a3f2c1e"

host_path = "/srv/data"

# At most one allocation writes to it.
capability {
  access_mode     = "single-node-single-writer"
  attachment_mode = "file-system"
}
