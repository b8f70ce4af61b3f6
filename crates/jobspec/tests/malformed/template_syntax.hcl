job "web" {
  group "server" {
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
      template {
        destination = "local/http.conf"
        data        = <<-EOF
          port = {{ env "NOMAD_PORT_http" }}
          {{ range services "web" }}
        EOF
      }
      template {
        data  = "{{ sha1Hex `x` }}"
        perms = "rw"
      }
    }
  }
}
