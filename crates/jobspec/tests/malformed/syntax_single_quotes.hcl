job "web" {
  type = 'service'
}
