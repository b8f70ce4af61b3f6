# A parameterized job: each dispatch runs a child with its payload and meta.
#
#   kafila job run examples/dispatch.hcl
#   echo "hello" | kafila job dispatch -meta language=en dispatch -

job "dispatch" {
  type = "batch"

  parameterized {
    payload       = "required"
    meta_required = ["language"]
    meta_optional = ["tone"]
  }

  group "read" {
    task "read" {
      driver = "raw_exec"

      # A path below the task's directory, NOMAD_TASK_DIR.
      dispatch_payload {
        file = "text"
      }

      config {
        command = "/bin/sh"
        args    = ["-c", "echo \"in $NOMAD_META_language: $(cat \"$NOMAD_TASK_DIR/text\")\""]
      }

      resources {
        cpu    = 20
        memory = 16
      }

      # The little that it prints needs no more than this, in MB.
      logs {
        max_files     = 2
        max_file_size = 1
      }
    }
  }
}
