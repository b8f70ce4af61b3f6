job "web" {
  multiregion {
  }
  group "server" {
    service {
      port = "http"
      connect {
        native = true
      }
    }
    volume "data" {
    }
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
      artifact {
        source = "https://example.com"
      }
      resources {
        secrets = 2
        numa {}
      }
    }
  }
}
